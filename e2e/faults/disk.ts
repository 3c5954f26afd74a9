/** A file system of one Product root, which a test can fill or make read-only. */
import { spawnSync } from 'node:child_process'
import {
  closeSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'

const IMAGE_BYTES = 96 * 1024 * 1024

function command(name: string, ...args: string[]): void {
  const { status, stderr } = spawnSync(name, args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${name} ${args.join(' ')}: ${stderr}`)
}

export class Disk {
  readonly #root: string
  readonly #image: string

  private constructor(root: string) {
    this.#root = root
    this.#image = `${root}.image`
  }

  /** Moves a Product root, which no server may have opened, to a file system of its own. */
  static mountAt(root: string): Disk {
    const disk = new Disk(root)
    writeFileSync(disk.#image, '')
    truncateSync(disk.#image, IMAGE_BYTES)
    // No blocks are reserved for root, which runs the tests and would not see a full disk.
    command('mkfs.ext4', '-q', '-F', '-m', '0', disk.#image)
    const before = `${root}.before`
    renameSync(root, before)
    mkdirSync(root)
    command('mount', '-o', 'loop', disk.#image, root)
    rmSync(join(root, 'lost+found'), { recursive: true })
    command('cp', '-a', `${before}/.`, root)
    rmSync(before, { recursive: true })
    return disk
  }

  /** The reason why this machine cannot mount such a file system; null if it can. */
  static reason(directory: string): string | null {
    const root = join(directory, 'trial')
    mkdirSync(root)
    try {
      const disk = Disk.mountAt(root)
      disk.setReadOnly(true)
      disk.setReadOnly(false)
      disk.unmount()
      return null
    } catch (error) {
      return String(error)
    }
  }

  /** Fills the disk to its last byte. */
  fill(): void {
    const file = openSync(this.#filler, 'w')
    try {
      for (const size of [1024 * 1024, 4096, 1]) writeUntilFull(file, Buffer.alloc(size, 1))
    } finally {
      closeSync(file)
    }
  }

  /** Removes what `fill` wrote. */
  empty(): void {
    rmSync(this.#filler)
  }

  /**
   * Makes every file and directory immutable, or writable again. The kernel does not make a file
   * system read-only while files are open for writing; of immutable files it rejects writes through
   * open files too, as of a file system that became read-only after an error.
   */
  setReadOnly(isReadOnly: boolean): void {
    command('chattr', '-R', isReadOnly ? '+i' : '-i', this.#root)
  }

  unmount(): void {
    spawnSync('chattr', ['-R', '-i', this.#root])
    command('umount', this.#root)
    rmSync(this.#image)
  }

  get #filler(): string {
    return join(this.#root, 'filler')
  }
}

function writeUntilFull(file: number, block: Buffer): void {
  try {
    for (;;) writeSync(file, block)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  }
}
