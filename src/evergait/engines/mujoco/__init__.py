"""MuJoCo's own batched stepper, equal to Gymnasium bit for bit."""
