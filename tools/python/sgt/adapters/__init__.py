"""Short adapters from sgt.Loader to what training frameworks expect. Read the one that you need,
and copy it if yours differs."""
