"""Pairs to encoders. `vocabulary.train_vocabulary` learns a tokenizer, `fitting.fit` trains a dual encoder."""
