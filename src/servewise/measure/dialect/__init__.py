"""What servers that speak OpenAI's API send: events and answers, read into arrivals, counts and one outcome."""
