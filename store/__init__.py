"""Redis: sessions, operations and their order. The only room that spells a key."""
