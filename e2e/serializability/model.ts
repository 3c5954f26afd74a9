/** A sequential model of the lists and registers of the workload. */
import { type Answer, type Operation, spaceOf } from './history.ts'

export class Model {
  readonly #lists = new Map<number, number[]>()
  /** Registers by space, then by key. */
  readonly #registers = new Map<number, Map<number, number>>()

  /** Performs the operations and returns the answer of each. */
  perform(operations: readonly Operation[]): Answer[] {
    return operations.map((operation) => this.#performOne(operation))
  }

  #performOne(operation: Operation): number[] {
    switch (operation.kind) {
      case 'append': {
        const list = this.#lists.get(operation.key) ?? []
        list.push(operation.element)
        this.#lists.set(operation.key, list)
        return [list.length]
      }
      case 'list':
        return [...(this.#lists.get(operation.key) ?? [])]
      case 'write': {
        const before = this.#read(operation.key)
        this.#space(spaceOf(operation.key)).set(operation.key, operation.value)
        return before
      }
      case 'read':
        return this.#read(operation.key)
      case 'range':
        return this.#range(operation)
    }
  }

  #read(key: number): number[] {
    const value = this.#space(spaceOf(key)).get(key)
    return value === undefined ? [] : [value]
  }

  #range({ space, from, to, order, limit }: Operation & { kind: 'range' }): number[] {
    const found = [...this.#space(space)].filter(([, value]) => value >= from && value < to)
    found.sort(([, a], [, b]) => (order === 'asc' ? a - b : b - a))
    return found.slice(0, limit).flat()
  }

  #space(space: number): Map<number, number> {
    let registers = this.#registers.get(space)
    if (registers === undefined) {
      registers = new Map()
      this.#registers.set(space, registers)
    }
    return registers
  }
}
