"""From a Hugging Face directory to a base model that has been checked."""
