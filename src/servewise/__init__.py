"""Servewise: how to serve a large language model, predicted with error bars."""

__version__ = "0.1.0"
