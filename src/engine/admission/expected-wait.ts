/**
 * Estimates how long a new call would take, by Little's law: the calls in flight, divided by the
 * rate at which calls end. While calls queue, that rate is the capacity, regardless of what limits
 * it. Otherwise it only shows the demand, so the estimate is 0: calls queue once those in flight
 * are old.
 */
import type { System } from '../../system/system.ts'

/** Fewer calls do not queue: two processors end them within the deadline, a second each. */
const QUEUED_CALLS_MIN = 16
/**
 * Mean age of the calls in flight from which on they queue. Calls that wait for a promotion, a new
 * runner or a slow disk stay younger, and so does a burst of short calls.
 */
const QUEUED_AGE_MILLIS = 1_000
/** Time over which the rate is taken. It is longer than such a wait, in which few calls end. */
const WINDOW_MILLIS = 2_000
const BUCKETS = 10
const BUCKET_MILLIS = WINDOW_MILLIS / BUCKETS

export class ExpectedWait {
  readonly #system: Pick<System, 'monotonicMillis'>
  #inFlight = 0
  /** Sum of the arrival times of the calls in flight. */
  #arrivals = 0
  /** The arrival of the first call since which at least one was always in flight. */
  #busySince = 0
  /** Calls that ended, by the time in which they did. */
  readonly #ended = new Float64Array(BUCKETS)
  #bucket = 0

  constructor(system: Pick<System, 'monotonicMillis'>) {
    this.#system = system
  }

  /** Counts a call, and returns the time of its arrival for `end`. */
  begin(): number {
    const now = this.#system.monotonicMillis()
    if (this.#inFlight === 0) {
      this.#busySince = now
      this.#arrivals = 0
      this.#ended.fill(0)
    }
    this.#inFlight += 1
    this.#arrivals += now
    return now
  }

  end(arrival: number): void {
    this.#advance(this.#system.monotonicMillis())
    this.#ended[this.#bucket % BUCKETS]! += 1
    this.#inFlight -= 1
    this.#arrivals -= arrival
  }

  /** Milliseconds; 0 while calls do not queue. */
  millis(): number {
    if (this.#inFlight < QUEUED_CALLS_MIN) return 0
    const now = this.#system.monotonicMillis()
    const age = now - this.#arrivals / this.#inFlight
    if (age < QUEUED_AGE_MILLIS) return 0
    this.#advance(now)
    const ended = this.#ended.reduce((sum, count) => sum + count, 0)
    // Nothing is known of the rate, such as while a runner starts.
    if (ended === 0) return age
    // The newest bucket is not over yet.
    const covered = WINDOW_MILLIS - BUCKET_MILLIS + (now % BUCKET_MILLIS)
    return (this.#inFlight * Math.min(now - this.#busySince, covered)) / ended
  }

  /** Clears the buckets of times that are over. */
  #advance(now: number): void {
    const bucket = Math.floor(now / BUCKET_MILLIS)
    const passed = Math.min(bucket - this.#bucket, BUCKETS)
    for (let i = 0; i < passed; i++) this.#ended[(bucket - i) % BUCKETS] = 0
    this.#bucket = bucket
  }
}
