//! rskafka: BOOTSTRAP TOPIC. Creates the topic, writes a record with each codec, reads them back,
//! deletes the first two, and prints offsets and values, a line each.
use std::collections::BTreeMap;

use chrono::{TimeZone, Utc};
use rskafka::client::partition::{Compression, OffsetAt, UnknownTopicHandling};
use rskafka::client::ClientBuilder;
use rskafka::record::Record;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut words = std::env::args().skip(1);
    let (bootstrap, topic) = (words.next().unwrap(), words.next().unwrap());
    let client = ClientBuilder::new(vec![bootstrap]).build().await.unwrap();
    let controller = client.controller_client().unwrap();
    controller.create_topic(&topic, 2, 1, 5_000).await.unwrap();
    let partition = client
        .partition_client(topic.as_str(), 1, UnknownTopicHandling::Retry)
        .await
        .unwrap();
    let codecs = [
        Compression::NoCompression,
        Compression::Gzip,
        Compression::Lz4,
        Compression::Snappy,
    ];
    for (number, codec) in codecs.into_iter().enumerate() {
        let record = Record {
            key: Some(format!("k{number}").into_bytes()),
            value: Some(format!("value {number} ").repeat(100).into_bytes()),
            headers: BTreeMap::from([("codec".to_owned(), vec![number as u8])]),
            timestamp: Utc.timestamp_millis_opt(1_700_000_000_000 + number as i64).unwrap(),
        };
        let offsets = partition.produce(vec![record], codec).await.unwrap();
        println!("produced {:?}", offsets);
    }
    partition.delete_records(2, 5_000).await.unwrap();
    let earliest = partition.get_offset(OffsetAt::Earliest).await.unwrap();
    let latest = partition.get_offset(OffsetAt::Latest).await.unwrap();
    println!("range {earliest} {latest}");
    let (found, high) = partition.fetch_records(earliest, 1..1_000_000, 1_000).await.unwrap();
    println!("high {high}");
    for one in found {
        let record = one.record;
        println!(
            "read {} {} {} {} {}",
            one.offset,
            String::from_utf8(record.key.unwrap()).unwrap(),
            record.value.unwrap().len(),
            record.headers["codec"][0],
            record.timestamp.timestamp_millis(),
        );
    }
}
