//! The files of the user (rank 2).
