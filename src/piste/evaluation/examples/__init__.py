"""Reading labelled texts: files, columns, what people marked."""
