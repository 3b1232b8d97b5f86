"""A stand-in of the model: a server on loopback that speaks the dialects of the clients' models."""
