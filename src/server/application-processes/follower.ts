/** Follows the main process: applies its messages in their order, and tells how far it has come. */
import type { FollowedDocuments } from '../../documents/followed-documents.ts'
import type { ReadingEngine } from '../../engine/create-reading-engine.ts'
import { assert } from '../../errors/assert.ts'
import type { FollowedProduct } from '../../product/followed-product.ts'
import type { ReleaseId } from '../../value/ids.ts'
import type { MainSide, StartMessage } from './messages.ts'
import { PositionWaiters } from './position-waiters.ts'
import { SharedCounters } from './shared-counters.ts'

export interface Followers {
  readonly start: StartMessage
  readonly engine: ReadingEngine
  readonly store: FollowedDocuments
  readonly product: FollowedProduct
}

type Followed = Exclude<MainSide['message'], { readonly kind: 'start' | 'drain' }>

export class Follower {
  #opened: Followers | null = null
  #positions: PositionWaiters | null = null
  /** Messages that arrived before everything was open. */
  #early: Followed[] = []
  #control = 0
  #served = 0

  begin(opened: Followers): void {
    const counters = SharedCounters.open(opened.start.countersPath)
    this.#opened = opened
    this.#positions = new PositionWaiters(
      () => counters,
      () => ({
        durable: opened.engine.durableSequence(),
        control: this.#control,
        served: this.#served,
      }),
    )
    const early = this.#early
    this.#early = []
    for (const message of early) this.note(message)
  }

  note(message: Followed): void {
    if (this.#opened === null) {
      this.#early.push(message)
      return
    }
    const { engine, store, product } = this.#opened
    if (message.kind === 'commit') {
      const [sequence, writes] = message.commit
      engine.followCommit(sequence, writes)
    } else if (message.kind === 'schema') {
      store.followSchema(message.schema)
    } else if (message.kind === 'control') {
      this.#control = message.changes
      product.follow()
    } else {
      void this.#serve(product, message)
    }
  }

  /** Waits for the loads of what the main process serves already. */
  async #serve(
    { serving }: FollowedProduct,
    { changes, served }: Extract<Followed, { readonly kind: 'served' }>,
  ): Promise<void> {
    await serving.whenServing(served)
    this.#served = Math.max(this.#served, changes)
    this.received()
  }

  /** Lets those continue who waited for what has arrived. */
  received(): void {
    this.#positions?.advance()
  }

  /** True if everything that the main process has answered is visible here. */
  get isCurrent(): boolean {
    return this.#positions?.isCurrent === true
  }

  /** Resolves when everything that the main process has answered until now is visible here. */
  current(): Promise<void> {
    assert(this.#positions !== null, 'the process is open')
    return this.#positions.whenCurrent()
  }

  async warm(releaseId: ReleaseId): Promise<null> {
    assert(this.#opened !== null, 'the process is open')
    const { product, engine } = this.#opened
    await engine.warm(await product.releases.load(releaseId))
    return null
  }
}
