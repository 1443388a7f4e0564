"""What several test folders share: values to build, a store with its time, promises to quote, waiting."""
