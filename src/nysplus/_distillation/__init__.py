"""Parts of distillation: scores of teachers, and synthetic rows."""
