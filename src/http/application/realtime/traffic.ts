/** Counts what a connection has received and sent, for its log record and the metrics. */
import type { Metrics } from '../../../telemetry/metrics/metrics.ts'

/** The counts of one connection since the upgrade. */
export interface TrafficCounts {
  readonly messagesReceived: number
  readonly receivedBytes: number
  readonly messagesSent: number
  readonly sentBytes: number
  readonly states: number
  /** Those of the states that were sent as patches. */
  readonly patches: number
  readonly resyncs: number
}

export class Traffic implements TrafficCounts {
  readonly #counters: Metrics['counters']
  messagesReceived = 0
  receivedBytes = 0
  messagesSent = 0
  sentBytes = 0
  states = 0
  patches = 0
  resyncs = 0

  constructor({ counters }: Pick<Metrics, 'counters'>) {
    this.#counters = counters
  }

  received(bytes: number): void {
    this.messagesReceived += 1
    this.receivedBytes += bytes
    this.#counters.realtimeMessagesReceived.add()
    this.#counters.realtimeReceivedBytes.add(bytes)
  }

  sent(bytes: number): void {
    this.messagesSent += 1
    this.sentBytes += bytes
    this.#counters.realtimeSentBytes.add(bytes)
  }

  /** Counts a state, and its patch where it was sent as one. */
  stateSent(patch: string | null): void {
    this.states += 1
    this.#counters.realtimeStatesSent.add()
    if (patch === null) return
    this.patches += 1
    this.#counters.realtimePatchesSent.add()
    this.#counters.realtimePatchBytes.add(Buffer.byteLength(patch))
  }

  resyncSent(): void {
    this.resyncs += 1
    this.#counters.realtimeResyncs.add()
  }
}
