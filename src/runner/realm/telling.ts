/** What a call does ahead of the server: told in few frames, heard of one at a time. */
import type { Bridge } from './bridge.ts'
import type { Call, Calls } from './calls.ts'

/** What a call does ahead of the server, gathered for one frame. */
export function makeTelling(bridge: Bridge, calls: Calls, charactersMax: number) {
  function flush(call: Call): void {
    if (call.told === '') return
    bridge.emit(`["told",${call.id},[${call.told}]]`)
    call.told = ''
  }

  return {
    flush,
    /** What is left to tell, behind the usage of a call that ends. */
    rest: (call: Call): string => (call.told === '' ? '' : `,[${call.told}]`),
    tell(call: Call, op: string): void {
      if (call.finished) throw new Error('ctx was used after the Function had ended')
      call.told += call.told === '' ? op : `,${op}`
      call.toldInRow += 1
      if (call.told.length > charactersMax) flush(call)
    },
    /** The promise of what an operation comes to that was told. */
    promise(call: Call, kind: typeof Promise<unknown>, result: unknown): Promise<unknown> {
      call.pending += 1
      calls.see(call)
      return new kind((resolve) => {
        call.answers.push({ behind: call.asked, resolve, result })
      })
    },
  }
}

/** Lets the code hear of the next operation that it told of; false where it must wait, or ends. */
export function makeProceed(calls: Calls): () => boolean {
  function hear(call: Call): boolean {
    if (call.isDone || call.finished) return false
    const next = call.answers[0]
    if (next === undefined || next.behind > call.asked - call.open) return false
    call.answers.shift()
    call.pending -= 1
    next.resolve(next.result)
    return true
  }

  return () => {
    const { current, guests } = calls
    if (current !== null && hear(current)) return true
    for (let i = 0; i < guests.length; i++) if (hear(guests[i]!)) return true
    return false
  }
}
