"""Short adapters that turn a Loader into the data loader that a training framework expects. Read
the adapter that you need. If your training script differs, copy and change it."""
