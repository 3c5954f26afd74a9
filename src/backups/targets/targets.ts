/**
 * The port of the place where backups are kept. It stores bytes under names such as
 * `env_…/hst_…/000000000001.age`, of which the part before the last `/` is a directory.
 */

/** The files of backups as a restore reads them. */
export interface BackupFiles {
  /** The path or the bucket, for messages. Holds no secret. */
  readonly location: string

  /** Returns the names directly inside a directory, sorted; none if it does not exist. */
  names(directory: string): Promise<string[]>

  /** Returns the number of bytes under a name; null if there are none. */
  sizeOf(name: string): Promise<number | null>

  /** Yields the bytes. Raises BACKUP_CORRUPT where there are none under the name. */
  read(name: string): AsyncIterable<Uint8Array>
}

export interface BackupTarget extends BackupFiles {
  /**
   * Resolves to their number once the bytes are durable. Replaces what was there. After a failure
   * there is what was there or nothing; after the end of this process or a lost connection a part
   * of the bytes is possible.
   */
  write(name: string, bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<number>

  /** Does nothing if there are no bytes. */
  remove(name: string): Promise<void>

  /** Removes a directory that has no names, if directories exist by themselves. */
  removeDirectory(directory: string): Promise<void>

  /**
   * Returns the numbers of the file systems that the path leads through, that of the place itself
   * first. Absent where nothing can be mounted over the place. Raises UNAVAILABLE.
   */
  fileSystems?(): Promise<readonly number[]>
}
