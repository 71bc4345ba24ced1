"""How a model asks for tools in text: calls constrained by a schema, and calls found in what it wrote."""
