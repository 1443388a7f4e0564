"""One suite, every store: what `drumline.stores.base` promises, sentence by sentence, under races and at random."""
