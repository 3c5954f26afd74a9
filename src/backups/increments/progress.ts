/** The progress of the increments of a history. */
import { assert } from '../../errors/assert.ts'
import type { Run } from '../format/chain.ts'

export class Progress {
  /** The increments have every commit after this sequence; null while commits are missing. */
  #from: number | null = null
  #written = 0
  #reached = 0
  /** The files of documents up to this sequence are named by segments that the target has. */
  #files = 0
  #nextFiles = 0

  /** The newest sequence that the target has; null while commits are missing. */
  get written(): number | null {
    return this.#from === null ? null : this.#written
  }

  /** The newest sequence up to which the target has the bytes of all files. */
  get files(): number {
    return this.#files
  }

  /** The sequences of the next segment. */
  get range(): { readonly from: number; readonly to: number } {
    return { from: this.#written, to: this.#reached }
  }

  /** Returns whether the increments join up with a base that has this snapshot. */
  joins(sequence: number): boolean {
    return this.#from !== null && this.#from <= sequence
  }

  /** Continues increments that the target has up to `written`, and their files up to `files`. */
  begin(from: number, written = from, files = written): void {
    this.#from = from
    this.#written = written
    this.#reached = written
    this.#files = files
  }

  /** Notes that commits are missing from now on. */
  end(): void {
    this.#from = null
  }

  /** Begins the next segment. */
  restart(): void {
    this.#reached = this.#written
  }

  /** Notes that the next segment has the commits up to this sequence. */
  reach(sequence: number): void {
    this.#reached = sequence
  }

  /** Returns the run with the next segment, if the files of documents up to `files` are named. */
  run(files: number): Run {
    assert(this.#from !== null, 'increments have begun')
    this.#nextFiles = Math.min(this.#reached, files)
    return { from: this.#from, to: this.#reached, files: this.#nextFiles }
  }

  /** Notes that the target has the segment. */
  confirm(): void {
    this.#written = this.#reached
    this.#files = this.#nextFiles
  }
}
