# Generated from _async/ by client/generate_sync.py.
