/** Memory that several keepers hold, such as a result, charged to one subscriber at a time. */
import type { MemoryShare, Reservation } from '../../system/memory/memory-budget.ts'

/** A watched Query, or a subscription that is sending an older state. */
export interface Keeper {
  /** The shares of the subscribers for whom it keeps the memory. */
  shares(): Iterable<MemoryShare>
  /** Called once no subscriber of any keeper has room for the memory: do not keep it longer. */
  evicted(): void
}

interface Payer {
  readonly keeper: Keeper
  readonly share: MemoryShare
  readonly reservation: Reservation
}

export class SharedMemory {
  readonly #bytes: number
  readonly #keepers = new Set<Keeper>()
  #payer: Payer | null = null

  constructor(bytes: number) {
    this.#bytes = bytes
  }

  /** Returns false if no keeper has paid so far and no subscriber of this one has room. */
  keep(keeper: Keeper): boolean {
    this.#payer ??= this.#charge(keeper)
    if (this.#payer === null) return false
    this.#keepers.add(keeper)
    return true
  }

  /** Removes the keeper. A second call does nothing. */
  drop(keeper: Keeper): void {
    if (this.#keepers.delete(keeper) && this.#payer?.keeper === keeper) this.#chargeAnother()
  }

  /** A subscriber of the keeper with this share has left, and is not among its shares. */
  left(keeper: Keeper, share: MemoryShare): void {
    if (this.#payer?.keeper === keeper && this.#payer.share === share) this.#chargeAnother()
  }

  #charge(keeper: Keeper): Payer | null {
    for (const share of keeper.shares()) {
      const reservation = share.reserve(this.#bytes)
      if (reservation !== null) return { keeper, share, reservation }
    }
    return null
  }

  #chargeAnother(): void {
    this.#payer?.reservation.release()
    this.#payer = null
    for (const keeper of this.#keepers) {
      this.#payer = this.#charge(keeper)
      if (this.#payer !== null) return
    }
    const evicted = [...this.#keepers]
    this.#keepers.clear()
    for (const keeper of evicted) keeper.evicted()
  }
}
