"""The torch engine: base models, adapters, sampling and training on one device.

Of ours it imports only domain/; it knows nothing of queues, stores or the wire.
"""
