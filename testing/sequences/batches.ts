/**
 * Generates random sequences of identity operations and runs them on a real database, eight at once
 * on two servers, against the model of model.ts.
 */

import { expect } from 'vitest'
import { Fault } from '../../src/errors/fault.ts'
import type { Actor } from '../../src/identity/actor.ts'
import { exchange } from '../../src/identity/exchange.ts'
import type { Identity } from '../../src/identity/identity.ts'
import { readInvitationOperation } from '../../src/identity/invitation-operations.ts'
import { issueInvitation, revokeInvitation } from '../../src/identity/invitations.ts'
import { type Login, refresh, revokeSession } from '../../src/identity/sessions.ts'
import type { TestSystem } from '../../src/system/system.ts'
import { capabilitiesOfRole } from '../../src/value/capabilities.ts'
import type { InvitationId, OperationId } from '../../src/value/ids.ts'
import { ENVIRONMENT, PROJECT } from '../operators.ts'
import { fc } from '../properties.ts'
import type { ExternalLogins } from '../providers/external-logins.ts'
import { PROVIDER } from '../providers/identity-providers.ts'
import {
  ABSENT,
  explain,
  type InvitationModel,
  type Model,
  type Observed,
  type Operation,
  opened,
  type Result,
  type SessionModel,
  type SubjectModel,
} from './model.ts'
import {
  newSubjects,
  type Subject,
  storedSubject,
  subjectOperation,
  subjectRun,
} from './subjects.ts'

/** Requests that differ in everything that determines a grant. */
const REQUESTS = [
  { operatorName: 'Grace', role: 'developer', scope: ENVIRONMENT },
  { operatorName: 'Ada', role: 'observer', scope: PROJECT },
] as const
const SLOTS = 3
const AT_ONCE = 8

interface Invitation {
  readonly operationId: OperationId
  model: InvitationModel
  invitationId: InvitationId | null
  code: string | null
}

interface Session {
  readonly first: Login
  model: SessionModel
  /** Tokens of each generation, oldest first. */
  readonly tokens: { readonly refresh: string; readonly access: string }[]
}

/** The state of one sequence. */
export interface SequenceState {
  readonly fixture: ExternalLogins
  readonly servers: readonly Identity[]
  readonly owner: Actor
  readonly invitations: readonly Invitation[]
  readonly sessions: Session[]
  readonly subjects: readonly Subject[]
  /** Time of the start. All events of earlier sequences are older. */
  readonly startMicros: bigint
}

export async function newSequence(
  fixture: ExternalLogins,
  servers: readonly Identity[],
  owner: Actor,
): Promise<SequenceState> {
  advance(servers, 1)
  const invitations = Array.from({ length: SLOTS }, () => ({
    operationId: fixture.system.ids.make('opn'),
    model: ABSENT,
    invitationId: null,
    code: null,
  }))
  const subjects = await newSubjects(fixture)
  const startMicros = fixture.system.nowMicros()
  return { fixture, servers, owner, invitations, sessions: [], subjects, startMicros }
}

/** Advances the clocks of all servers, which show the same time. */
function advance(servers: readonly Identity[], millis: number): void {
  for (const { system } of servers) (system as TestSystem).advance(millis)
}

/** One operation of a batch. `pick` selects its target, modulo the number of targets. */
interface Draft {
  readonly kind: Operation['kind']
  readonly pick: number
  readonly variant: number
  /** Number of generations that the presented token is behind. */
  readonly age: number
  /** Number of revisions by which the managed source moves ahead; negative for a stale one. */
  readonly step: number
}

const draft: fc.Arbitrary<Draft> = fc.record({
  kind: fc.oneof(
    { arbitrary: fc.constantFrom<Operation['kind']>('issue', 'exchange', 'refresh'), weight: 4 },
    { arbitrary: fc.constantFrom<Operation['kind']>('revoke', 'look', 'authenticate'), weight: 2 },
    { arbitrary: fc.constant<Operation['kind']>('end'), weight: 1 },
    { arbitrary: fc.constantFrom<Operation['kind']>('log-in', 'enroll', 'reconcile'), weight: 4 },
  ),
  pick: fc.nat({ max: 5 }),
  variant: fc.oneof(
    { arbitrary: fc.constant(0), weight: 4 },
    { arbitrary: fc.nat({ max: 2 }), weight: 1 },
  ),
  age: fc.oneof(
    { arbitrary: fc.constant(0), weight: 5 },
    { arbitrary: fc.nat({ max: 2 }), weight: 1 },
  ),
  step: fc.oneof(
    { arbitrary: fc.constantFrom(0, 1), weight: 5 },
    { arbitrary: fc.integer({ min: -1, max: 3 }), weight: 1 },
  ),
})

type Command = fc.AsyncCommand<object, SequenceState>

/** Batches, with pauses between them that let access tokens and invitations expire. */
export const sequences = fc.commands<object, SequenceState, false>(
  [
    fc.array(draft, { minLength: AT_ONCE / 2, maxLength: AT_ONCE }).map(
      (drafts): Command => ({
        check: () => true,
        run: (_, sequence) => runBatch(sequence, drafts),
        toString: () => `batch ${JSON.stringify(drafts)}`,
      }),
    ),
    fc.constantFrom(60_000, 660_000, 1_860_000).map(
      (millis): Command => ({
        check: () => true,
        run: async (_, { servers }) => advance(servers, millis),
        toString: () => `pause ${millis}`,
      }),
    ),
  ] as never,
  { maxCommands: 10, size: 'max' },
) as unknown as fc.Arbitrary<Iterable<Command>>

type Thing = Invitation | Session | Subject

interface Job {
  readonly thing: Thing
  readonly operation: Operation
  readonly run: (server: Identity) => Promise<Result>
}

async function runBatch(sequence: SequenceState, drafts: readonly Draft[]): Promise<void> {
  const jobs = drafts.map((each) => jobOf(sequence, each)).filter((job) => job !== null)
  const results = await Promise.all(
    jobs.map(({ run }, i) => resultOf(run(sequence.servers[i % sequence.servers.length]!))),
  )
  const atMicros = sequence.fixture.system.nowMicros()
  for (const thing of new Set(jobs.map((job) => job.thing))) {
    const observed = jobs
      .map((job, i): Observed & Pick<Job, 'thing'> => ({ ...job, result: results[i]! }))
      .filter((each) => each.thing === thing)
    const stored = await storedState(sequence, thing)
    const end = explain(thing.model, observed, atMicros, (model) => stored(model))
    const story = observed.map(({ operation, result }) => ({ operation, result }))
    expect(end, `from ${inspect(thing.model)}: ${inspect(story)}`).not.toBeNull()
    thing.model = end as InvitationModel & SessionModel & SubjectModel
  }
}

const inspect = (value: unknown): string =>
  JSON.stringify(value, (_, item) => (typeof item === 'bigint' ? `${item}` : item))

async function resultOf(work: Promise<Result>): Promise<Result> {
  try {
    return await work
  } catch (error) {
    if (error instanceof Fault) return error.code
    throw error
  }
}

/** Returns null if the target does not exist yet: a code that was not revealed, no session. */
function jobOf(sequence: SequenceState, { kind, pick, variant, age, step }: Draft): Job | null {
  switch (kind) {
    case 'refresh':
    case 'authenticate':
    case 'end': {
      const thing = sequence.sessions[pick % Math.max(sequence.sessions.length, 1)]
      if (thing === undefined) return null
      const generation = Math.max(thing.tokens.length - age, 1)
      return sessionJob(sequence, thing, kind === 'end' ? { kind } : { kind, generation })
    }
    case 'log-in':
    case 'enroll':
    case 'reconcile': {
      const thing = sequence.subjects[pick % sequence.subjects.length]!
      const operation = subjectOperation(thing, kind, { step, content: variant })
      const run = subjectRun(sequence.fixture, thing, operation, (login) =>
        keepSession(sequence, login),
      )
      return run === null ? null : { thing, operation, run }
    }
    default: {
      const thing = sequence.invitations[pick % SLOTS]!
      const request = variant % REQUESTS.length
      return invitationJob(
        sequence,
        thing,
        kind === 'issue' ? { kind, variant: request } : { kind },
      )
    }
  }
}

function keepSession({ fixture, sessions }: SequenceState, login: Login): void {
  const model = opened(fixture.system.nowMicros())
  sessions.push({ first: login, model, tokens: [tokensOf(login)] })
}

function invitationJob(
  sequence: SequenceState,
  thing: Invitation,
  operation: Operation,
): Job | null {
  const { owner } = sequence
  const { operationId, invitationId, code } = thing
  const job = (run: Job['run']): Job => ({ thing, operation, run })
  switch (operation.kind) {
    case 'issue':
      return job(async (server) => {
        const given = { ...REQUESTS[operation.variant]!, operationId, requestId: null }
        const issued = await issueInvitation(server, owner, given)
        thing.invitationId = issued.invitation.invitationId
        if (issued.code === null) return 'replayed'
        expect(thing.code, 'a code is revealed once').toBeNull()
        thing.code = issued.code.reveal()
        return 'issued'
      })
    case 'look':
      return job(
        async (server) => (await readInvitationOperation(server, owner, operationId)).state,
      )
    case 'exchange':
      if (code === null) return null
      return job(async (server) => {
        const names = { deviceName: null, operatorName: null }
        keepSession(sequence, await exchange(server, { code, ...names, requestId: null }))
        return 'ok'
      })
    default:
      if (invitationId === null) return null
      return job(async (server) => {
        await revokeInvitation(server, owner, { invitationId, requestId: null })
        return 'ok'
      })
  }
}

function sessionJob({ owner }: SequenceState, thing: Session, operation: Operation): Job {
  const job = (run: Job['run']): Job => ({ thing, operation, run })
  if (operation.kind === 'refresh') {
    const refreshToken = thing.tokens[operation.generation - 1]!.refresh
    return job(async (server) => {
      const login = await refresh(server, { refreshToken, requestId: null })
      thing.tokens.push(tokensOf(login))
      return 'ok'
    })
  }
  if (operation.kind === 'authenticate') {
    const { access } = thing.tokens[operation.generation - 1]!
    return job(async (server) => {
      await server.authenticate(access)
      return 'ok'
    })
  }
  const { sessionId } = thing.first.session
  return job(async (server) => {
    await revokeSession(server, owner, { sessionId, requestId: null })
    return 'ok'
  })
}

function tokensOf(login: Login) {
  return { refresh: login.refreshToken!.reveal(), access: login.accessToken.reveal() }
}

/** Returns whether the database holds the state of a model. */
async function storedState(
  { fixture }: SequenceState,
  thing: Thing,
): Promise<(model: Model) => boolean> {
  if ('sub' in thing) return storedSubject(fixture, thing)
  if ('operationId' in thing) {
    const [row] = await fixture.sql<{ state: string }>(
      `select i.state from service_operator_invitations i
         join service_operator_invitation_operations o on o.invitation_id = i.invitation_id
        where o.operation_id = $1`,
      [thing.operationId],
    )
    return (model) => model.kind === 'invitation' && model.state === (row?.state ?? 'absent')
  }
  const [row] = await fixture.sql<{ generation: number; revocation: string | null }>(
    `select refresh_generation::integer as generation, revocation
       from service_operator_sessions where session_id = $1`,
    [thing.first.session.sessionId],
  )
  const state = { requested: 'revoked', reuse: 'reuse' }[row?.revocation ?? ''] ?? 'live'
  return (model) =>
    model.kind === 'session' && model.state === state && model.generation === row?.generation
}

/** Checks that each change has one audit record, without others, and the grants of operators. */
export async function checkEnd(sequence: SequenceState): Promise<void> {
  const expected: string[] = []
  for (const { model, invitationId, operationId } of sequence.invitations) {
    if (model.state === 'absent') continue
    expected.push(`invitation.create ${invitationId} ${operationId}`)
    if (model.state === 'consumed') expected.push(`invitation.consume ${invitationId} null`)
    if (model.state === 'revoked') expected.push(`invitation.revoke ${invitationId} null`)
    await checkGrants(sequence, model, invitationId!)
  }
  for (const { model, first } of sequence.sessions) {
    const { sessionId } = first.session
    expected.push(`session.create ${sessionId} null`)
    for (let i = 1; i < model.generation; i++) expected.push(`session.refresh ${sessionId} null`)
    if (model.state === 'revoked') expected.push(`session.revoke ${sessionId} null`)
    if (model.state === 'reuse') expected.push(`session.reuse_detected ${sessionId} null`)
  }
  for (const { model, operatorId } of sequence.subjects) {
    for (const record of model.records) {
      const about = record.startsWith('identity.') ? PROVIDER.providerId : operatorId
      expected.push(`${record} ${about} null`)
    }
  }
  const found = await sequence.fixture.sql<{ line: string }>(
    `select concat_ws(' ', operation, subject, coalesce(operation_id, 'null')) as line
       from service_platform_audit where at_micros >= $1`,
    [String(sequence.startMicros)],
  )
  expect(found.map((row) => row.line).sort()).toEqual(expected.sort())
}

async function checkGrants(
  { fixture }: SequenceState,
  { state, variant }: InvitationModel,
  invitationId: InvitationId,
): Promise<void> {
  const rows = await fixture.sql(
    `select o.operator_name, g.scope_kind, g.project_id, g.environment_id, g.capabilities
       from service_operator_invitations i
       join service_operators o on o.operator_id = i.consumed_by
       join service_operator_grants g on g.operator_id = o.operator_id
      where i.invitation_id = $1`,
    [invitationId],
  )
  const { operatorName, role, scope } = REQUESTS[variant]!
  const grant = {
    operator_name: operatorName,
    scope_kind: scope.kind,
    project_id: scope.projectId,
    environment_id: scope.environmentId,
    capabilities: capabilitiesOfRole(role),
  }
  expect(rows).toEqual(state === 'consumed' ? [grant] : [])
}
