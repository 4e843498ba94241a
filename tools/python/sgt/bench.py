"""What earlier versions measured here, sgt-bench does."""

raise SystemExit("sgt.bench is gone: type sgt-bench loader OUT/ --peer python3")
