/** Rows of published_keys: the newest key set of each JWT provider, byte for byte. */
import type { ControlReader, ControlTx } from './database.ts'

/** A provider and the URI of its keys: a set from another URI is not used. */
export interface KeyPublisher {
  readonly issuer: string
  readonly uri: string
}

export interface PublishedKeySet {
  readonly document: Uint8Array
  readonly fetchedAtMicros: bigint
}

export function findPublishedKeySet(
  reader: ControlReader,
  { issuer, uri }: KeyPublisher,
): PublishedKeySet | null {
  const row = reader.get<{ document: Uint8Array; fetched_at: number }>(
    'select document, fetched_at from published_keys where issuer = ? and uri = ?',
    issuer,
    uri,
  )
  return row === null ? null : { document: row.document, fetchedAtMicros: BigInt(row.fetched_at) }
}

/** Replaces the set of the issuer. */
export function writePublishedKeySet(
  tx: ControlTx,
  { issuer, uri }: KeyPublisher,
  { document, fetchedAtMicros }: PublishedKeySet,
): void {
  tx.run(
    `insert into published_keys (issuer, uri, document, fetched_at) values (?, ?, ?, ?)
     on conflict (issuer) do update
       set uri = excluded.uri, document = excluded.document, fetched_at = excluded.fetched_at`,
    issuer,
    uri,
    document,
    fetchedAtMicros,
  )
}

/** Deletes the sets of all other publishers. */
export function retainPublishedKeySets(tx: ControlTx, publishers: readonly KeyPublisher[]): void {
  const stored = tx.all<KeyPublisher>('select issuer, uri from published_keys')
  for (const { issuer, uri } of stored) {
    if (publishers.some((publisher) => publisher.issuer === issuer && publisher.uri === uri))
      continue
    tx.run('delete from published_keys where issuer = ?', issuer)
  }
}
