"""Servers that speak OpenAI's wire: llama.cpp's own, vLLM, LM Studio and hosted ones."""
