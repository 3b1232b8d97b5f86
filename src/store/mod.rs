//! The shared bare repository (rank 2).
