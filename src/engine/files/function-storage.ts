/** The port through which `ctx.storage` reaches bytes and grants (product/files implements it). */
/** The object that a file becomes. */
export interface ObjectRequest {
  readonly bucket: string
  /** Replaces the file that the key names; null for a file without a key. */
  readonly key: string | null
  readonly contentType: string
}

export interface UploadRequest extends ObjectRequest {
  readonly maximumBytes: number
  readonly expiresInSeconds: number
  /** The Release of the Action that makes the grant. */
  readonly releaseId: string
}

export interface DownloadRequest {
  readonly fileId: string
  readonly nowMicros: bigint
  readonly expiresInSeconds: number
  /** The name that a browser saves the file under; null for none. */
  readonly fileName: string | null
}

export interface SignedDownloadRequest extends DownloadRequest {
  /** True if a browser may show the file in place, provided that its type allows this. */
  readonly inline: boolean
}

/** A download without a header: the path is the credential. */
export interface SignedDownload {
  /** Path on the application origin. */
  readonly path: string
  readonly expiresAtMicros: bigint
}

export interface Grant extends SignedDownload {
  readonly token: string
}

export interface UploadGrant extends Grant {
  readonly uploadId: string
}

/** Every method raises UNAVAILABLE where the storage cannot be used. */
export interface FunctionStorage {
  /** Returns a grant of the file, which is equal for equal requests. */
  issueDownload(request: DownloadRequest): Grant

  /**
   * Returns the path of a signed URL of the file. Equal requests within a quarter of its life get
   * the same one, which then lives at least three quarters of what they asked for.
   */
  signDownload(request: SignedDownloadRequest): SignedDownload

  /** Raises LIMIT_EXCEEDED and FILE_NOT_FOUND for what the bucket does not admit. */
  issueUpload(request: UploadRequest): Promise<UploadGrant>

  /** Stores the bytes and returns the ID of the file. Raises as `issueUpload` does. */
  put(object: ObjectRequest, bytes: Uint8Array): Promise<string>

  /** Returns the content of a file. Raises PRODUCT_CORRUPT where it is damaged. */
  read(content: { readonly sha256: string; readonly size: bigint }): Promise<Uint8Array>
}
