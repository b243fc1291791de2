"""The command line: what people type to run a server and to look after what runs on it."""
