"""How much one request, and one process, may ask for."""

LARGEST_BODY = 1 << 20  # bytes
LARGEST_HEAD = 1 << 16  # bytes that may come before the head of a request is whole
MOST_ITEMS = 1000  # asks, tells or cancels in a request
MOST_ARMS = 1000
MOST_PENDING = 100_000  # decisions without an outcome, by bandit and process
MOST_BANDITS = 500  # of a store in one process: each has a thread that keeps in touch with the store
MOST_WARM = 50  # of these, how many are opened when the service starts; the others wait for the first request
MOST_STREAMS = 100  # pages that look on at the same time
MOST_WAITING = 1000  # requests at the same time
LONGEST_NAME = 100  # characters
LOGGED = 5000  # decisions and events kept in memory for the page, by bandit
KEPT_ANSWERS = 10_000  # answers to requests with an Idempotency-Key kept in memory, by bandit
STORE_PATIENCE = 10.0  # seconds that a request waits for the store
WARM_PATIENCE = 30.0  # seconds after its start in which a service that opens bandits is not ready
LOOK_PATIENCE = 1.5  # the same for one who only looks, and can be shown what is known here
