"""Where text comes from and where it lies: sources, mining, fingerprints, the store."""
