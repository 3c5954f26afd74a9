/** Options of continuous backups, and the state that they report. */
import type { DocumentStore } from '../../documents/store.ts'
import type { DurableCommits } from '../../engine/commits/committer.ts'
import type { Code } from '../../errors/codes.ts'
import type { HistoryId } from '../../value/ids.ts'
import type { Sidecar } from '../../wire/files/backups.ts'
import type { BackedUpServer, BaseFigures, BaseOptions } from '../base/base-backup.ts'
import type { Retention } from './retention.ts'

/** The parts of a running server that a continuous backup reads and follows. */
export interface FollowedServer extends BackedUpServer {
  readonly commits: Pick<DurableCommits, 'follow'>
  readonly store: BackedUpServer['store'] &
    Pick<DocumentStore, 'changedVersions' | 'newOperations' | 'onSchemaChange'>
}

export interface ContinuousBackupOptions
  extends Pick<BaseOptions, 'target' | 'recipients' | 'historyId'> {
  readonly server: FollowedServer
  /** Time between two bases. */
  readonly baseIntervalMillis: number
  readonly retention: Retention
  /** Called when the backup has commits that the documents lack, and a new history has begun. */
  readonly onHistory?: (lost: LostCommits) => void
  /** Called when `failure`, `isReachable` or `lastBase` of the state has changed. */
  readonly onChange?: (state: BackupState) => void
  /** Milliseconds between two increments. Tests that call `flush` make it long. */
  readonly flushMillis?: number
  /** Time that `stop` gives to the last increment and to a base. */
  readonly stopMillis?: number
  /** Bytes of the commits that no increment has yet. Beyond them a base replaces increments. */
  readonly bufferBytesMax?: number
  /** Bytes of a catch-up. A base replaces a longer one. */
  readonly catchUpBytesMax?: number
}

/** Commits that a backup has and the documents of its server lack. */
export interface LostCommits {
  /** The history that has them, which is not continued. */
  readonly historyId: HistoryId
  /** The newest sequence of that history. */
  readonly backedUp: number
  /** The newest sequence of the documents when the server started. */
  readonly documents: number
}

/** The cause of a base. */
export type BaseReason = 'start' | 'interval' | 'gap' | 'request'

export interface BackupState {
  /** The newest sequence that can be restored; null before the first base. */
  readonly newestSequence: number | null
  /** The newest sequence up to which the bytes of all files can be restored too. */
  readonly filesSequence: number | null
  /** Everything that was committed up to this time can be restored. */
  readonly newestAtMicros: bigint | null
  /** Age of the oldest commit that cannot be restored yet; 0 if there is none. */
  readonly behindMillis: number
  readonly lastBase: Sidecar | null
  /** The figures of `lastBase`; null if an earlier process made it. */
  readonly lastFigures: BaseFigures | null
  /** Null if the newest attempts of all parts succeeded. */
  readonly failure: Code | null
  readonly isReachable: boolean
  /** The cause of the newest base that was begun; null before the first one. */
  readonly baseReason: BaseReason | null
  /** Bytes written to the target since the start. */
  readonly bytesWritten: number
  /** Bytes of the commits that no increment has yet. */
  readonly bufferedBytes: number
}
