/**
 * The port of the bytes of stored files. Bytes are addressed by their SHA-256, so equal files are
 * stored once. The store knows no metadata: which bytes are still referenced is derived from the
 * metadata of files, never from a counter that could drift from it (product/files/collection.ts).
 */

/** The address of stored bytes, and their length. */
export interface Content {
  /** 64 lowercase hex characters. */
  readonly sha256: string
  readonly size: number
}

/** A part of stored bytes; both ends in bytes. */
export interface Slice {
  readonly start: number
  /** Exclusive. */
  readonly end: number
}

/** Bytes with one writer, which always calls `discard`. Every method raises UNAVAILABLE. */
export interface StagedBlob {
  /** Appends the bytes. Waits until the store can take more. */
  write(bytes: Uint8Array): Promise<void>
  /** Returns the address of the bytes that were written. Call it after the last `write`. */
  finish(): Promise<Content>
  /**
   * Resolves once the bytes are durable under their address. Replaces existing bytes, which are the
   * same or damaged. Call it after `finish`.
   */
  commit(): Promise<void>
  /** Removes the bytes unless they were committed. Never throws. */
  discard(): Promise<void>
}

export type BlobCondition = 'whole' | 'missing' | 'damaged'

/** State of uploads and downloads. With `full`, downloads work and uploads fail. */
export type BlobAvailability = 'available' | 'full' | 'unavailable'

/** Bytes that a response can have as its body. */
export type BlobBody = Blob | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>

/** A store that a restore fills. */
export interface FilledBlobs extends Pick<BlobStore, 'stage'> {
  /** Makes all bytes durable, where their `commit` did not. Raises UNAVAILABLE. */
  syncAll?(): Promise<void>
}

export interface BlobStore {
  /**
   * Prepares to store bytes. `bytesExpected` is their announced number, 0 if unknown. Raises
   * UNAVAILABLE where the free space would fall below the floor.
   */
  stage(bytesExpected: number): Promise<StagedBlob>

  /** Raises UNAVAILABLE while the store has no space, as `stage` does. */
  requireSpace(): Promise<void>

  /**
   * Returns a part of the bytes as a body of a response, which opens them when it is sent. Raises
   * PRODUCT_CORRUPT where they are missing or of another length, and UNAVAILABLE.
   */
  open(content: Content, slice: Slice): Promise<BlobBody>

  /** Raises PRODUCT_CORRUPT where the bytes are missing or altered, and UNAVAILABLE. */
  read(content: Content): Promise<Uint8Array>

  /** Yields the SHA-256 and the length of all stored bytes. Raises UNAVAILABLE. */
  list(): AsyncIterable<Content>

  /** Removes the bytes, if they exist. Raises UNAVAILABLE. */
  remove(sha256: string): Promise<void>

  /**
   * Compares stored bytes with their address. `quick` compares the length alone where the bytes
   * are on another machine. Calls `pause` after each MiB that was read. Raises UNAVAILABLE.
   */
  check(
    content: Content,
    options: { readonly quick: boolean; readonly pause?: () => Promise<void> },
  ): Promise<BlobCondition>

  /** Sets damaged bytes aside, so that the address is free. Raises UNAVAILABLE. */
  quarantine(sha256: string): Promise<void>

  /** Returns the current state. Never throws. */
  availability(): Promise<BlobAvailability>
}
