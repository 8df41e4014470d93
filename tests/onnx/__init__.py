"""Export to ONNX: what onnxruntime computes from the files, and what is refused."""
