"""The host loop: training on Gymnasium environments, outside of the compiled learner."""
