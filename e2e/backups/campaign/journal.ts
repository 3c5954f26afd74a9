/**
 * The knowledge that the clients of a server have of its state: the Mutations that it acknowledged
 * with their sequences, and the changes of its configuration and of its sessions in their order.
 * The state at a sequence follows from it, without any code of the server.
 */

/** A Mutation that a client sends until it has an answer. */
export interface Call {
  /** Calls have ascending numbers in the order in which they were first sent. */
  readonly number: number
  readonly operationId: string
  readonly change: Put | Attach
  readonly sentMillis: number
  /** Null as long as no answer has arrived. */
  answer: Answer | null
}

export interface Put {
  readonly kind: 'put' | 'toggle'
  readonly key: number
}

export interface Attach {
  readonly kind: 'attach'
  readonly fileId: string
  readonly sha256: string
}

export interface Answer {
  readonly sequence: number
  /** The value that a register had before, 0 for none. */
  readonly result: string
  readonly receivedMillis: number
}

/** A change outside of the documents, which has no sequence. */
export interface Change {
  readonly number: number
  readonly sentMillis: number
  /** All calls with this number or a greater one were sent after the answer; null without one. */
  answeredBefore: number | null
}

/** An entry of the configuration: its name, whether it is a secret, and its value. */
export interface Setting extends Change {
  readonly kind: 'variable' | 'secret'
  readonly name: string
  readonly value: string
}

export interface Credential extends Change {
  readonly kind: 'credential'
  readonly credentialId: string
  key: string | null
}

export interface Session extends Change {
  readonly kind: 'session'
  readonly token: string
}

export interface Register {
  readonly value: number
  readonly writes: number
}

export interface Documents {
  readonly registers: ReadonlyMap<number, Register>
  /** The digests of attached files by the numbers of their calls. */
  readonly files: ReadonlyMap<number, string>
}

/** The journal of one history. */
export class Journal {
  readonly calls: Call[] = []
  readonly control: (Setting | Credential)[] = []
  readonly sessions: Session[] = []
  /** The newest sequence that the server said can be restored. */
  reported = 0
  /** The newest sequence up to which it said that the bytes of files can be restored. */
  reportedFiles = 0
  /** Sequences, from and to, whose files may have lost their bytes with an earlier server. */
  readonly uncertainFiles: (readonly [number, number])[] = []
  /** Sessions that a backup must have by what the server said. */
  reportedSessions = 0

  /**
   * The journal of a server that was restored to a state: the calls up to a sequence, and the first
   * changes of each kind.
   */
  restoredTo(sequence: number, counts: { control: number; sessions: number }): Journal {
    const journal = new Journal()
    journal.calls.push(...this.answeredUpTo(sequence))
    journal.control.push(...this.control.slice(0, counts.control))
    journal.sessions.push(...this.sessions.slice(0, counts.sessions))
    journal.uncertainFiles.push(...this.uncertainFiles, [this.reportedFiles, sequence])
    return journal
  }

  /** Returns whether a server must have the bytes of the file of a commit. */
  mustHaveFile(sequence: number): boolean {
    if (sequence > this.reportedFiles) return false
    return !this.uncertainFiles.some(([from, to]) => from < sequence && sequence <= to)
  }

  answeredUpTo(sequence: number): Call[] {
    return this.calls.filter(({ answer }) => answer !== null && answer.sequence <= sequence)
  }

  /** Returns the documents at a sequence, and what contradicts the answers. */
  documentsAt(sequence: number): Documents & { readonly contradictions: readonly string[] } {
    const registers = new Map<number, Register>()
    const files = new Map<number, string>()
    const contradictions: string[] = []
    const calls = this.answeredUpTo(sequence)
    calls.sort((a, b) => a.answer!.sequence - b.answer!.sequence)
    for (const { number, change, answer } of calls) {
      if (change.kind === 'attach') {
        files.set(number, change.sha256)
        continue
      }
      const before = registers.get(change.key)
      if (answer!.result !== String(before?.value ?? 0)) {
        contradictions.push(`call ${number} returned ${answer!.result}, not ${before?.value ?? 0}`)
      }
      if (change.kind === 'toggle' && before !== undefined) registers.delete(change.key)
      else registers.set(change.key, { value: number, writes: (before?.writes ?? 0) + 1 })
    }
    return { registers, files, contradictions }
  }

  /**
   * Returns the number of changes that a server at a sequence has at least: those that were
   * answered before a call was sent whose commit it has.
   */
  leastChanges(changes: readonly Change[], sequence: number): number {
    const newest = this.answeredUpTo(sequence).reduce(
      (max, { number }) => Math.max(max, number),
      -1,
    )
    const count = changes.findLastIndex(
      ({ answeredBefore }) => answeredBefore !== null && answeredBefore <= newest,
    )
    return count + 1
  }
}
