//! Claims that were true once, with the words by which they are found.

use super::claim::{Claim, Sign};

/// How English denies.
const NOT: &[&str] = &[
    "no",
    "not",
    "non",
    "none",
    "never",
    "neither",
    "nor",
    "cannot",
    "can't",
    "doesn't",
    "don't",
    "isn't",
    "aren't",
    "won't",
    "without",
    "lacks",
    "lack",
    "missing",
    "nothing that",
    "unable",
];
/// How Chinese denies.
const NOT_ZH: &[&str] = &["没有", "没能", "不", "无", "未", "非", "缺"];
/// How a thing is said to be still to come.
const LATER: &[&str] =
    &["not begun", "not started", "not there", "not yet", "planned", "to come", "later", "someday"];
const LATER_ZH: &[&str] = &["未开始", "没有开始", "尚未", "计划", "将来", "还没"];

/// All of them.
pub(super) const CLAIMS: &[Claim] = &[
    Claim {
        name: "no server takes over when another one dies",
        today: "on PostgreSQL a second server waits and takes over by itself; a data directory has one server, which has to be started again (docs/cluster.md)",
        signs: &[
            Sign {
                about: &[
                    "takes over",
                    "take over",
                    "took over",
                    "taken over",
                    "taking over",
                    "takeover",
                    "takeovers",
                    "fails over",
                    "fail over",
                    "failover",
                    "high availability",
                    "highly available",
                    "second server",
                    "steps in",
                    "step in",
                ],
                beside: NOT,
                within: 10,
                unless: &[],
            },
            Sign {
                about: &["no standby", "no hot standby", "no second server", "no other server"],
                beside: &[],
                within: 0,
                unless: &[],
            },
            Sign {
                about: &["接管", "接手", "故障切换", "故障转移", "高可用", "备机", "主备"],
                beside: NOT_ZH,
                within: 8,
                unless: &[],
            },
            Sign {
                about: &[
                    "tickwheel is one server",
                    "tickwheel is a single server",
                    "tickwheel is only one server",
                    "there is only one server",
                    "tickwheel has one server",
                    "tickwheel has only one server",
                ],
                beside: &[],
                within: 0,
                unless: &["at a time", "at the same time"],
            },
            Sign {
                about: &["tickwheel 是一台服务器", "只有一台服务器", "单台服务器", "单机"],
                beside: &[],
                within: 0,
                unless: &["同一时刻", "同时"],
            },
        ],
    },
    Claim {
        name: "the tasks are not replicated",
        today: "on PostgreSQL the database has the replicas, and with a synchronous standby nothing acknowledged is lost with a machine; a data directory has none (docs/explanation/promises.md)",
        signs: &[
            Sign {
                about: &["replicated", "replication", "replica", "replicas", "replicate", "replicates"],
                beside: NOT,
                within: 10,
                unless: &[],
            },
            Sign {
                about: &["one disk", "a single disk", "the disk of tickwheel"],
                beside: &[],
                within: 0,
                unless: &["postgresql", "directory"],
            },
            Sign {
                about: &["在一块盘上", "在一块磁盘上", "一台服务器，一块盘", "单盘"],
                beside: &[],
                within: 0,
                unless: &["postgresql", "数据目录"],
            },
            Sign { about: &["副本", "多副本"], beside: NOT_ZH, within: 8, unless: &[] },
            Sign {
                about: &[
                    "没有复制",
                    "不复制",
                    "不支持复制",
                    "不会复制",
                    "无复制",
                    "不做复制",
                    "没有主从",
                    "不支持主从",
                ],
                beside: &[],
                within: 0,
                unless: &[],
            },
        ],
    },
    Claim {
        name: "the cluster is not begun",
        today: "a second server waits for the shards of the same database, and several servers share no work yet (docs/cluster.md)",
        signs: &[
            Sign {
                about: &["cluster", "clusters", "clustering", "clustered"],
                beside: NOT,
                within: 6,
                unless: &[],
            },
            Sign {
                about: &["cluster", "clusters", "clustering", "replicated store"],
                beside: LATER,
                within: 10,
                unless: &[],
            },
            Sign { about: &["集群", "多副本存储"], beside: NOT_ZH, within: 5, unless: &[] },
            Sign { about: &["集群", "多副本存储"], beside: LATER_ZH, within: 8, unless: &[] },
        ],
    },
    Claim {
        name: "there is no transaction with your data",
        today: "on PostgreSQL, tickwheel.put and tickwheel.cancel belong to your own transaction; a data directory has no part in it (docs/cluster.md)",
        signs: &[
            Sign {
                about: &["transaction", "transactions", "transactional", "transactionally"],
                beside: NOT,
                within: 5,
                unless: &[],
            },
            Sign { about: &["atomic", "atomically", "outbox"], beside: NOT, within: 5, unless: &[] },
            Sign { about: &["事务", "本地消息表"], beside: NOT_ZH, within: 8, unless: &[] },
        ],
    },
    Claim {
        name: "a worker has to ask, and nothing is pushed",
        today: "a queue with a target needs no worker: the server sends its tasks to a webhook or a broker (docs/how-to/targets.md)",
        signs: &[
            Sign {
                about: &[
                    "has to ask",
                    "have to ask",
                    "must ask",
                    "must always ask",
                    "has to poll",
                    "have to poll",
                    "must poll",
                    "a worker asks",
                    "the worker asks",
                    "each worker asks",
                    "workers always ask",
                    "only pulls",
                    "pull only",
                ],
                beside: &[],
                within: 0,
                unless: &["target", "targets", "webhook", "webhooks"],
            },
            Sign {
                about: &["no push", "not push", "without push", "no webhook", "no webhooks", "not call you"],
                beside: &[],
                within: 0,
                unless: &[],
            },
            Sign {
                about: &["push", "pushes", "pushed", "pushing", "webhook", "webhooks"],
                beside: &[
                    "never",
                    "neither",
                    "does not",
                    "doesn't",
                    "cannot",
                    "can't",
                    "is not",
                    "isn't",
                    "are not",
                    "aren't",
                    "nothing is",
                    "lacks",
                ],
                within: 2,
                unless: &[],
            },
            Sign {
                about: &["calls your service", "call your service", "calls your", "calls you"],
                beside: NOT,
                within: 3,
                unless: &[],
            },
            Sign {
                about: &[
                    "主动来问",
                    "主动来要",
                    "主动来取",
                    "主动拉取",
                    "worker 来要",
                    "worker 来问",
                    "必须轮询",
                    "只能轮询",
                    "需要轮询",
                    "要自己轮询",
                    "只能拉取",
                ],
                beside: &[],
                within: 0,
                unless: &["目标", "webhook", "没有 worker"],
            },
            Sign {
                about: &["推送", "webhook", "调用你的服务", "调用你"],
                beside: &["没有", "不会", "不能", "不支持", "不做", "从不", "无法"],
                within: 3,
                unless: &[],
            },
        ],
    },
    Claim {
        name: "there is no console, but `tickwheel top`",
        today: "each server has a console for a browser at its address, unless `--console off` is set (docs/how-to/console.md)",
        signs: &[
            Sign {
                about: &[
                    "console",
                    "web page",
                    "web ui",
                    "web interface",
                    "web view",
                    "dashboard",
                    "management page",
                    "admin page",
                    "user interface",
                ],
                beside: &[
                    "no",
                    "not",
                    "never",
                    "neither",
                    "without",
                    "lacks",
                    "missing",
                    "instead of a",
                    "instead of the",
                    "in place of",
                ],
                within: 4,
                unless: &[],
            },
            Sign {
                about: &["tickwheel top"],
                beside: &["there is", "here", "instead", "in the place of", "replaces", "only"],
                within: 12,
                unless: &["console"],
            },
            Sign {
                about: &["控制台", "网页", "管理页面", "网页界面", "图形界面", "web ui"],
                beside: &["没有", "没", "无", "不带", "不提供", "代替", "取代", "缺"],
                within: 4,
                unless: &[],
            },
            Sign {
                about: &["tickwheel top"],
                beside: &["有", "这边", "代替", "只", "改用"],
                within: 16,
                unless: &["控制台"],
            },
        ],
    },
    Claim {
        name: "there is one shard only",
        today: "a directory or a database has 1 to 1,024 shards, chosen when it is made (docs/how-to/sizing.md)",
        signs: &[
            Sign {
                about: &["one shard", "single shard", "a shard"],
                beside: &[
                    "only",
                    "today",
                    "there is",
                    "just",
                    "always",
                    "so far",
                    "currently",
                    "for now",
                    "never more",
                    "not more",
                ],
                within: 3,
                unless: &[],
            },
            Sign {
                about: &[
                    "sharding",
                    "sharded",
                    "several shards",
                    "more shards",
                    "many shards",
                    "more than one shard",
                    "divided over",
                    "divided into",
                ],
                beside: &["no", "not", "none", "neither", "nor", "cannot", "can't", "without", "lacks"],
                within: 8,
                unless: &[],
            },
            Sign {
                about: &[
                    "单分片",
                    "只有一个分片",
                    "仅有一个分片",
                    "仅一个分片",
                    "只一个分片",
                    "单个分片",
                    "没有分片",
                    "不支持分片",
                    "不能分片",
                    "不分片",
                    "只支持一个分片",
                ],
                beside: &[],
                within: 0,
                unless: &[],
            },
            Sign {
                about: &["一个分片"],
                beside: &["目前", "现在", "今天", "总是"],
                within: 8,
                unless: &["一个分片接一个分片"],
            },
            Sign {
                about: &["多个分片", "几个分片", "多分片"], beside: NOT_ZH, within: 4, unless: &[]
            },
        ],
    },
];

#[cfg(test)]
mod tests {
    use super::super::claim::Reader;
    use super::super::sentences::Sentence;
    use super::*;

    fn claims(leads: &[&str], text: &str) -> Vec<&'static str> {
        let leads = leads.iter().map(|&lead| lead.to_owned()).collect();
        let sentence = Sentence { line: 1, text: text.to_owned(), leads };
        Reader::new(CLAIMS).claims_of(&sentence).iter().map(|claim| claim.name).collect()
    }

    /// Each claim in words that no page ever had, in the order of the claims.
    const REWORDED: [&[&str]; 7] = [
        &[
            "If the machine burns, none of your other machines takes over.",
            "Tickwheel has no failover.",
            "A second server can never step in.",
            "Tickwheel is a single server, so plan for its death.",
            "机器坏了，别的机器不会接管。",
            "Tickwheel 没有高可用。",
            "Tickwheel 只有一台服务器。",
        ],
        &[
            "What you put is never replicated.",
            "A server keeps no replica of its tasks.",
            "All tasks are on one disk.",
            "任务不复制到别的机器。",
            "任务没有副本。",
            "任务只在一块盘上。",
        ],
        &["A cluster is not yet there.", "Clustering is planned.", "目前没有集群。", "集群还没做。"],
        &[
            "Tickwheel cannot join your transaction.",
            "A put is not part of a transaction of yours.",
            "There is nothing atomic about it: no outbox.",
            "提交任务不能放进你的事务。",
            "没有跨两边的事务。",
        ],
        &[
            "Each worker has to ask for its tasks.",
            "Tickwheel does not push.",
            "There are no webhooks.",
            "It never calls your service.",
            "worker 必须主动来问。",
            "服务器不会推送任务。",
            "没有 webhook。",
        ],
        &[
            "There is no web page for people.",
            "Tickwheel comes without a console.",
            "Instead of it, there is `tickwheel top`.",
            "没有控制台。",
            "这边只有 `tickwheel top`。",
        ],
        &[
            "A directory has just one shard.",
            "The queues of a server cannot be divided into shards; sharding is not supported.",
            "There is a single shard today.",
            "目录是单分片的。",
            "目前一个服务器只用一个分片。",
            "不支持多个分片。",
        ],
    ];

    #[test]
    fn a_claim_is_found_in_other_words() {
        assert_eq!(REWORDED.len(), CLAIMS.len());
        for (claim, sentences) in CLAIMS.iter().zip(REWORDED) {
            for sentence in sentences {
                let found = claims(&[], sentence);
                assert!(found.contains(&claim.name), "{sentence} is found to claim {found:?}");
            }
        }
    }

    #[test]
    fn true_sentences_claim_nothing() {
        let sentences = [
            "A second server takes over by itself, and your own transactions can put tasks.",
            "Tickwheel has one server at a time.",
            "On PostgreSQL the database has the replicas.",
            "Several shards have a log each.",
            "The server pushes each task to a webhook, and no worker is needed.",
            "A worker asks, or a target gets the task.",
            "Look at the console, or at `tickwheel top` in a terminal.",
            "The overtaken task is not lost.",
            "第二台服务器会接管，还可以在你自己的事务里提交任务。",
            "第一台没了就接管。",
            "副本由数据库负责。",
            "没有 worker 来要。",
            "一个分片接一个分片地进行。",
            "有[控制台](console.md)、`tickwheel top` 和指标。",
        ];
        for sentence in sentences {
            assert_eq!(claims(&[], sentence), [""; 0], "{sentence}");
        }
    }

    #[test]
    fn an_answer_is_read_with_its_question() {
        let takeover = [CLAIMS[0].name];
        assert_eq!(claims(&["another server takes over", "Tickwheel"], "no"), takeover);
        assert_eq!(claims(&["It has none of these:"], "failover"), takeover);
        assert_eq!(claims(&["another server takes over"], "yes"), [""; 0]);
        // The question is found where it stands, and not in each of its answers.
        assert_eq!(claims(&["no server takes over"], "restart it"), [""; 0]);
    }

    #[test]
    fn words_far_from_each_other_are_no_claim() {
        let far = "Nothing is lost and no task is early while all the others that are due on this machine wait for the server that takes over.";
        assert_eq!(claims(&[], far), [""; 0]);
    }
}
