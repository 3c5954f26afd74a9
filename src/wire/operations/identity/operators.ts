/** Administration of operators: the list, their sessions, their grants, and their state. */
import {
  GrantChanged,
  GrantChangeRequest,
  OperatorChanged,
  OperatorChangeRequest,
  OperatorPage,
  OperatorsQuery,
} from '../../identity/access.ts'
import { Sessions, SessionsQuery } from '../../identity/auth.ts'
import { CHANGE_ERRORS, operatorOperation } from '../operation.ts'

/** 100 operators, some with a grant for each of many Projects. */
const RESPONSE_BYTES_MAX = 16 * 1024 * 1024

const CHANGE = {
  capability: 'operators:manage',
  operationId: 'required',
  body: { schema: OperatorChangeRequest },
  replies: { 200: OperatorChanged },
  errors: ['PLATFORM_CONFLICT', 'PLATFORM_NOT_FOUND', ...CHANGE_ERRORS],
} as const

export const listOperators = operatorOperation({
  method: 'GET',
  path: '/v1/access/operators',
  name: 'listOperators',
  summary: 'All operators, the newest first, with their grants.',
  capability: 'operators:manage',
  query: OperatorsQuery,
  replies: { 200: OperatorPage },
  responseBytesMax: RESPONSE_BYTES_MAX,
})

export const listOperatorSessions = operatorOperation({
  method: 'GET',
  path: '/v1/access/operators/:operatorId/sessions',
  name: 'listOperatorSessions',
  summary: 'The active sessions of an operator, the newest first.',
  capability: 'operators:manage',
  query: SessionsQuery,
  replies: { 200: Sessions },
  errors: ['PLATFORM_NOT_FOUND'],
})

export const disableOperator = operatorOperation({
  method: 'POST',
  path: '/v1/access/operators/:operatorId/disable',
  name: 'disableOperator',
  summary: 'Disables an operator and revokes its sessions; not the last owner.',
  ...CHANGE,
})

export const enableOperator = operatorOperation({
  method: 'POST',
  path: '/v1/access/operators/:operatorId/enable',
  name: 'enableOperator',
  summary: 'Enables an operator, with the grants that it had.',
  ...CHANGE,
})

/** Repeatable: the request says what the grant becomes, and what it was. */
export const changeGrant = operatorOperation({
  method: 'PUT',
  path: '/v1/access/operators/:operatorId/grants',
  name: 'changeGrant',
  summary: 'Gives an operator a role at a scope, or revokes its grant there; not the last owner.',
  capability: 'operators:manage',
  body: { schema: GrantChangeRequest },
  replay: 'safe',
  replies: { 200: GrantChanged },
  errors: ['PLATFORM_CONFLICT', 'PLATFORM_NOT_FOUND', ...CHANGE_ERRORS],
  responseBytesMax: RESPONSE_BYTES_MAX,
})

export const operatorOperations = {
  listOperators,
  listOperatorSessions,
  disableOperator,
  enableOperator,
  changeGrant,
}
