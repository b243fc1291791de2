"""The wire: what a request may hold, what an answer holds, and the way to the plain structs of domain/.

Pure: marshmallow and numpy, and of ours only domain/. No Flask, no Redis, no torch.
"""
