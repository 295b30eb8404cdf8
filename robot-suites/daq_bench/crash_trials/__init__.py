"""Real runs on light candidates in which one of the bench's own processes is killed, or a fault is planted; a judge says what is left."""
