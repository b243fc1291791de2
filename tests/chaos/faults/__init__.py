"""What may go wrong with a deployment, a kind of fault per module; `table` says how often each is drawn."""
