/** Files of /proc that hold one line of numbers. */
import { closeSync, openSync, readSync } from 'node:fs'

/** Upper bound of the length of such a line. */
const LINE_BYTES = 256

/**
 * A line of numbers that the kernel writes anew for each read. The file stays open, since it is
 * read some 40 times a second: opening and closing it costs several times what a read does.
 */
export class KernelFile {
  #fd: number | null
  readonly #bytes = Buffer.alloc(LINE_BYTES)

  private constructor(fd: number) {
    this.#fd = fd
  }

  /** Opens a file; null if the system has no such file. */
  static open(path: string): KernelFile | null {
    try {
      return new KernelFile(openSync(path, 'r'))
    } catch {
      return null
    }
  }

  /** Reads the nth number of the line; null if the process has ended. */
  number(nth: number): number | null {
    if (this.#fd === null) return null
    try {
      const length = readSync(this.#fd, this.#bytes, 0, LINE_BYTES, 0)
      const numbers = this.#bytes.toString('latin1', 0, length).split(' ')
      const value = Number.parseInt(numbers[nth] ?? '', 10)
      return Number.isNaN(value) ? null : value
    } catch {
      return null
    }
  }

  close(): void {
    if (this.#fd !== null) closeSync(this.#fd)
    this.#fd = null
  }
}
