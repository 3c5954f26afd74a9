/** Path parameters. A name has the same type in every operation. */
import { ChannelName } from '../channels.ts'
import { ConfigurationName } from '../configuration.ts'
import { CronName } from '../crons.ts'
import { DocumentIdField, TableName } from '../data.ts'
import { idField } from '../fields.ts'
import { ObjectKey } from '../files/buckets.ts'
import { SignedDownload } from '../files/stored-files.ts'
import { MountName } from '../http/mounts.ts'
import { FunctionNameField } from '../invocations.ts'
import { MigrationName } from '../migrations/migrations.ts'
import type { Infer } from '../schema.ts'
import { WorkspaceName } from '../workspace.ts'

export const PATH_PARAMETERS = {
  projectId: idField('prj'),
  environmentId: idField('env'),
  operatorId: idField('opr'),
  sessionId: idField('ops'),
  invitationId: idField('opi'),
  operationId: idField('opn'),
  backupId: idField('bkp'),
  releaseId: idField('rel'),
  scheduledId: idField('sch'),
  clientId: idField('app'),
  credentialId: idField('crd'),
  uploadId: idField('upl'),
  fileId: idField('fil'),
  /** A credential: the token of a signed URL. */
  signedDownload: SignedDownload,
  bucketId: idField('bkt'),
  storageKeyId: idField('stk'),
  /** All that is left of the path, slashes included. */
  objectKey: ObjectKey,
  channel: ChannelName,
  workspace: WorkspaceName,
  /** The name of a Function, in which `/` is percent-encoded. */
  function: FunctionNameField,
  name: ConfigurationName,
  cron: CronName,
  mount: MountName,
  migration: MigrationName,
  table: TableName,
  documentId: DocumentIdField,
} as const

export type PathParameter = keyof typeof PATH_PARAMETERS

/** Parsed parameters of a path such as `/channels/:channel/rollback`. */
export type Params<P extends string> = {
  readonly [N in NameIn<P> & PathParameter]: Infer<(typeof PATH_PARAMETERS)[N]>
}
type NameIn<P extends string> = P extends `${string}:${infer Name}/${infer Rest}`
  ? Name | NameIn<Rest>
  : P extends `${string}:${infer Name}`
    ? Name
    : never
