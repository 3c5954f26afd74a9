/**
 * Audit records of Product changes. The changes are in the control database and the audit trail is
 * in the identity database, so a record is committed with its change in an outbox and delivered
 * from there until the trail has it: no crash and no outage loses a record or writes it twice.
 */
import type { RecordedAuthor } from '../../identity/actor.ts'
import {
  deletePendingAudit,
  insertPendingAudit,
  listPendingAudit,
} from '../../storage/control/audit-outbox.ts'
import type { ControlDatabase, ControlTx } from '../../storage/control/database.ts'
import { CoalescingTask } from '../../system/concurrency.ts'
import type { System } from '../../system/system.ts'
import type { Logger } from '../../telemetry/log.ts'
import type { SessionPurpose } from '../../value/capabilities.ts'
import type {
  AuditId,
  CredentialId,
  OperationId,
  OperatorId,
  RequestId,
  SessionId,
} from '../../value/ids.ts'

export interface ProductAudit {
  readonly auditId: AuditId
  readonly operation: `product.${string}.${string}`
  readonly outcome: 'succeeded' | 'failed'
  /** Null for a development key, and for a command that runs on the machine of the Product root. */
  readonly actor: OperatorId | null
  /** The application credential of a change with a development key; null for all other changes. */
  readonly credentialId: CredentialId | null
  readonly subject: string
  readonly atMicros: bigint
  readonly requestId: RequestId | null
  readonly sessionId: SessionId | null
  /** Null for a change without an Operation ID. */
  readonly operationId: OperationId | null
  /** Purpose of the derived session that made the change; null for all other changes. */
  readonly purpose: SessionPurpose | null
}

/** Writes to the audit trail. Resolves once the record is durable; accepts repeated records. */
export type AuditSink = (record: ProductAudit) => Promise<void>

/** The part of an audit record that the change itself provides. */
export interface AuditedChange {
  readonly operation: ProductAudit['operation']
  readonly outcome?: ProductAudit['outcome']
  readonly subject: string
  readonly requestId: RequestId | null
  readonly operationId?: OperationId
}

/** Stores a record in the transaction of the change; the next server of the root delivers it. */
export function appendAudit(
  tx: ControlTx,
  system: System,
  actor: RecordedAuthor | null,
  { operation, outcome = 'succeeded', subject, requestId, operationId }: AuditedChange,
  state: 'committed' | 'held' = 'committed',
): AuditId {
  const record: Omit<ProductAudit, 'auditId' | 'atMicros'> & { atMicros: string } = {
    operation,
    outcome,
    ...authorOf(actor),
    subject,
    atMicros: String(system.nowMicros()),
    requestId,
    operationId: operationId ?? null,
  }
  const auditId = system.ids.make('aud')
  insertPendingAudit(tx, { auditId, record: JSON.stringify(record), isHeld: state === 'held' })
  return auditId
}

function authorOf(
  author: RecordedAuthor | null,
): Pick<ProductAudit, 'actor' | 'sessionId' | 'credentialId' | 'purpose'> {
  const none = { actor: null, sessionId: null, credentialId: null, purpose: null }
  if (author === null) return none
  if ('credentialId' in author) return { ...none, ...author }
  const { operatorId, sessionId, purpose } = author
  return { actor: operatorId, sessionId, credentialId: null, purpose }
}

interface OutboxOptions {
  readonly system: System
  readonly log: Logger
  readonly control: ControlDatabase
  readonly sink: AuditSink
}

const BATCH_RECORDS = 64
const RETRY_MS = 5_000

export class AuditOutbox {
  readonly #options: OutboxOptions
  readonly #delivery: CoalescingTask
  #retry: NodeJS.Timeout | null = null

  constructor(options: OutboxOptions) {
    this.#options = options
    this.#delivery = new CoalescingTask(
      () => this.#deliverAll(),
      (error) => this.#retryLater(error),
    )
  }

  /** Stores a record in the transaction of the change. Call `deliver` after the commit. */
  append(tx: ControlTx, actor: RecordedAuthor, change: AuditedChange): void {
    appendAudit(tx, this.#options.system, actor, change)
  }

  /** Starts the delivery of pending records. Never throws; it is retried after a failure. */
  deliver(): void {
    this.#delivery.start()
  }

  /** Resolves when the delivery in progress, if any, has ended. */
  whenIdle(): Promise<void> {
    return this.#delivery.whenIdle()
  }

  async close(): Promise<void> {
    if (this.#retry !== null) clearTimeout(this.#retry)
    await this.#delivery.close()
  }

  async #deliverAll(): Promise<void> {
    const { control, sink } = this.#options
    for (;;) {
      const pending = control.read((reader) => listPendingAudit(reader, BATCH_RECORDS))
      if (pending.length === 0) return
      for (const { auditId, record } of pending) {
        const fields = JSON.parse(record) as ProductAudit
        // Records that an earlier version stored lack these members.
        const { credentialId = null, purpose = null } = fields
        // The row is deleted only after the delivery. A crash in between repeats the delivery,
        // which the trail accepts; the other order would lose the record.
        await sink({ ...fields, credentialId, purpose, auditId, atMicros: BigInt(fields.atMicros) })
        control.transaction((tx) => deletePendingAudit(tx, auditId))
      }
    }
  }

  #retryLater(error: unknown): void {
    const message = 'Audit records are not delivered yet; the delivery is retried.'
    this.#options.log.warn('product.audit_delayed', { error, message })
    if (this.#delivery.isClosed || this.#retry !== null) return
    this.#retry = setTimeout(() => {
      this.#retry = null
      this.deliver()
    }, RETRY_MS)
    this.#retry.unref()
  }
}
