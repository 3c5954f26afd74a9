/** `svc import files`: stores the files of an import, and writes their IDs into its documents. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Fault } from '../../../errors/fault.ts'
import { sha256Hex } from '../../../system/digests.ts'
import { CONSOLE_OBJECT_BYTES_MAX } from '../../../value/files/buckets.ts'
import { PAGE_MAX } from '../../../wire/fields.ts'
import type { ObjectField } from '../../../wire/files/buckets.ts'
import { listObjects, putObject } from '../../../wire/operations/buckets/objects.ts'
import { argument, type CommandSpec, type Context, command } from '../../contexts.ts'
import { explanation } from '../../explanations.ts'
import { withPath } from '../../files.ts'
import { readPages } from '../../network/pages.ts'
import { openRemote, type Remote } from '../../roots/remotes.ts'
import { resolvePath } from '../../roots/roots.ts'
import { formatBytes, progressBar } from '../../sizes.ts'
import { BUCKET, type BucketItem, findBucket, objectNamed } from '../files/requests.ts'
import { REMOTE } from '../operations.ts'
import {
  type ManifestFile,
  readManifest,
  readStoredIds,
  readTables,
  replaceFileIds,
  writeStoredIds,
} from './import-directories.ts'

export const importFilesCommand: CommandSpec = command({
  name: 'import files',
  summary: 'Store the files of an import, and write their IDs into its documents',
  details: [
    'Run it before the documents are imported. A file that the bucket has under its key with the',
    'same content is not sent again, so an interrupted run continues. A file of more than 64 MiB',
    'has to be there already: send it with a client of S3 to the key that the failure names.',
  ],
  positionals: [argument('DIR', 'The directory that `svc import` wrote')],
  options: { ...REMOTE, bucket: BUCKET },
  examples: ['svc import files from-convex --bucket uploads'],
  async run(context, { bucket: name, ...at }, [path]) {
    const directory = resolvePath(context.environment, path!)
    const tables = readTables(directory)
    const files = await readManifest(directory)
    const remote = await openRemote(context, at)
    const bucket = await findBucket(remote, name)
    const upload = new Upload(context, { remote, bucket, directory })
    const sending = upload.storeAll(files)
    const ids = await context.output.progress(() => progressBar(upload.done, files.length), sending)
    const replacements = new Map(ids)
    // An earlier run may have written the IDs of another server.
    for (const [fileId, before] of readStoredIds(directory)) {
      replacements.set(before, ids.get(fileId) ?? before)
    }
    for (const { table } of tables) await replaceFileIds(directory, table, replacements)
    await writeStoredIds(directory, ids)
    const { sent } = upload
    await context.output.result(
      { version: 1, files: files.length, sent, bucketId: bucket.bucketId },
      [`Stored ${sent} files; ${files.length - sent} were there. The documents have their IDs.`],
    )
  },
})

class Upload {
  readonly #context: Context
  readonly #at: {
    readonly remote: Remote
    readonly bucket: BucketItem
    readonly directory: string
  }
  /** Files that the bucket has. */
  done = 0
  /** Files that were sent. */
  sent = 0

  constructor(
    context: Context,
    at: { readonly remote: Remote; readonly bucket: BucketItem; readonly directory: string },
  ) {
    this.#context = context
    this.#at = at
  }

  /** Returns the IDs that the server gave to the files, by those of the manifest. */
  async storeAll(files: readonly ManifestFile[]): Promise<ReadonlyMap<string, string>> {
    const present = await this.#present(files)
    const ids = new Map<string, string>()
    for (const file of files) {
      if (this.#context.signal.aborted) throw new Fault('CLIENT_INTERRUPTED')
      const object = present.get(file.key)
      const { fileId } = object?.sha256 === file.sha256 ? object : await this.#store(file)
      ids.set(file.fileId, fileId)
      this.done += 1
    }
    return ids
  }

  /** Reads the objects of the bucket that may be files of the manifest. */
  async #present(files: readonly ManifestFile[]): Promise<ReadonlyMap<string, ObjectField>> {
    const { remote, bucket } = this.#at
    const { bucketId } = bucket
    const keys = new Set(files.map(({ key }) => key))
    const prefix = [...keys][0]?.split('/')[0]
    if (prefix === undefined) return new Map()
    const objects = await readPages((after) => {
      const query = { prefix, limit: PAGE_MAX, after: after ?? undefined }
      return remote.call(listObjects, { params: { bucketId }, query, subjects: { bucketId } })
    })
    return new Map(objects.filter(({ key }) => keys.has(key)).map((each) => [each.key, each]))
  }

  async #store({ path, key, contentType, size, sha256 }: ManifestFile): Promise<ObjectField> {
    const { remote, bucket, directory } = this.#at
    if (size > CONSOLE_OBJECT_BYTES_MAX) throw tooLarge(key)
    const bytes = withPath(path, () => readFileSync(join(directory, path)))
    if (bytes.length !== size || sha256Hex(bytes) !== sha256) {
      throw new Fault('CLIENT_FILE_FAILED', { detail: `${path} is not the file of the manifest.` })
    }
    const { object } = await remote.call(putObject, {
      ...objectNamed({ bucketId: bucket.bucketId, key }),
      operationId: this.#context.environment.system.ids.make('opn'),
      body: bytes,
      contentType,
    })
    if (object.sha256 !== sha256) {
      throw new Fault('CLIENT_RESPONSE_INVALID', {
        detail: `The server stored other bytes than ${path} has.`,
      })
    }
    this.sent += 1
    return object
  }
}

function tooLarge(key: string): Fault {
  return new Fault('PLATFORM_BODY_TOO_LARGE', {
    detail: `The file of the key ${key} has more than ${formatBytes(CONSOLE_OBJECT_BYTES_MAX)}.`,
    cause: explanation({
      next:
        'Send it to this key with a client of S3 (`svc buckets keys issue` makes a storage key), ' +
        'then run the command again.',
    }),
  })
}
