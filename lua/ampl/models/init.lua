-- ampl.models: known networks, under the names that their published weights have.

return require "ampl.lazy"("ampl.models", {"mlp", "gpt"})
