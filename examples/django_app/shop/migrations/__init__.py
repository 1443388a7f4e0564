"""Django's migrations. Drumline brings its own schema, and migrates it itself."""
