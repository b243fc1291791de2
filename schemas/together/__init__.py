"""What Together's SDK sends and reads, translated into the same plain structs."""
