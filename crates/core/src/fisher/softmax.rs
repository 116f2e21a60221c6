//! Softmax.
