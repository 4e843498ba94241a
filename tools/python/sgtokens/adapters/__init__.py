"""Short adapters that give training frameworks the data loader they expect, made of a Loader. Read
the one that you need, and copy and change it if your training script differs."""
