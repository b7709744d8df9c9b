"""The host loop: training on Gymnasium environments, which act outside of the compiled learner."""
